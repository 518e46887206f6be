-- The sample database of the walkthrough: a shop with 8 stores, 25 products and 8425 orders.
-- Run it in an empty database:  mysql sampledb < initial.sql

create table store (
  id int not null,
  address varchar(1024),
  city varchar(255),
  state varchar(2),
  country varchar(2),
  zip varchar(10),
  primary key (id)
);

create table product (
  id int not null,
  name varchar(255),
  dept varchar(100),
  category varchar(100),
  price decimal(10,2),
  primary key (id)
);

create table productorder (
  id int not null auto_increment,
  productid int,
  storeid int,
  qty int,
  soldprice decimal(10,2),
  create_dt date,
  primary key (id)
);

insert into store (id, address, city, state, country, zip) values
(1001, '12 Harbor Walk', 'Portland', 'ME', 'US', '04101'),
(1002, '480 Mill Street, Unit 7', 'Burlington', 'VT', 'US', '05401'),
(1003, '9 Orchard Lane', 'Ithaca', 'NY', 'US', '14850'),
(1004, '2210 River Road', 'Richmond', 'VA', 'US', '23220'),
(1005, '77 King''s Court', 'Savannah', 'GA', 'US', '31401'),
(1006, '1501 Prairie Avenue', 'Omaha', 'NE', 'US', '68102'),
(1007, '300 Canyon Drive', 'Santa Fe', 'NM', 'US', '87501'),
(1008, '64 Lighthouse Point', 'Astoria', 'OR', 'US', '97103');

insert into product (id, name, dept, category, price) values
(1001, 'Trail Lantern', 'Outdoor', 'Lighting', 24.90),
(1002, 'Head Lamp', 'Outdoor', 'Lighting', 19.50),
(1003, 'Two Person Tent', 'Outdoor', 'Camping', 189.00),
(1004, 'Sleeping Bag, 3 Seasons', 'Outdoor', 'Camping', 99.00),
(1005, 'Folding Chair', 'Outdoor', 'Camping', 34.95),
(1006, 'Steel Bottle 1 l', 'Outdoor', 'Drinking', 21.00),
(1007, 'Water Filter', 'Outdoor', 'Drinking', 44.00),
(1008, 'Chef''s Knife', 'Kitchen', 'Knives', 79.00),
(1009, 'Bread Knife', 'Kitchen', 'Knives', 39.00),
(1010, 'Cutting Board', 'Kitchen', 'Preparation', 29.90),
(1011, 'Mixing Bowls, Set of 3', 'Kitchen', 'Preparation', 32.00),
(1012, 'Cast Iron Pan', 'Kitchen', 'Cooking', 54.00),
(1013, 'Stock Pot 8 l', 'Kitchen', 'Cooking', 69.00),
(1014, 'Moka Pot', 'Kitchen', 'Coffee', 28.50),
(1015, 'Café Grinder', 'Kitchen', 'Coffee', 119.00),
(1016, 'Desk Lamp', 'Office', 'Lighting', 49.00),
(1017, 'Notebook, Dotted', 'Office', 'Paper', 12.90),
(1018, 'Fountain Pen', 'Office', 'Writing', 36.00),
(1019, 'Ink, Midnight Blue', 'Office', 'Writing', 9.80),
(1020, 'Standing Desk', 'Office', 'Furniture', 499.00),
(1021, 'Monitor Arm', 'Office', 'Furniture', 89.00),
(1022, 'Garden Shears', 'Garden', 'Tools', 26.00),
(1023, 'Hand Trowel', 'Garden', 'Tools', 11.50),
(1024, 'Seed Box', 'Garden', 'Sowing', 17.00),
(1025, 'Rain Gauge', 'Garden', 'Measuring', 14.20);

-- n orders of day d, the same ones every time: spread over products 1001-1025 and stores 1001-1008.
delimiter //
create procedure loadorders(n int, d date)
begin
  declare i int default 0;
  while i < n do
    insert into productorder (productid, storeid, qty, soldprice, create_dt)
    values (1001 + mod(i * 7 + n, 25), 1001 + mod(i * 3 + n, 8), 1 + mod(i * 11, 10),
            cast(5 + mod(i * 137, 9500) / 100 as decimal(10,2)), d);
    set i = i + 1;
  end while;
end//
delimiter ;

call loadorders(1010, '2018-11-27');
call loadorders(1196, '2018-12-03');
call loadorders(4250, '2018-12-10');
call loadorders(1246, '2018-12-13');
call loadorders(723, '2018-11-28');
