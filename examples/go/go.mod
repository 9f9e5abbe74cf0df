module example.com/tidegate

go 1.19
