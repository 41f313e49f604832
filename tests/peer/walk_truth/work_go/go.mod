module walk_truth

go 1.19
