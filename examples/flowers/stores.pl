% store(Store, Region, Least rank of a driver, Who assigns). driver(Driver, Number): of equal ranks the least number wins.
store(rose, west, 1, automatic).  store(lily, west, 3, manual).  store(iris, east, 2, automatic).  store(aster, east, 6, manual).
driver(d1, 1).  driver(d2, 2).  driver(d3, 3).  driver(d4, 4).  driver(d5, 5).  driver(d6, 6).  driver(d7, 7).  driver(d8, 8).
