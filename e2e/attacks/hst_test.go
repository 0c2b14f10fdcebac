package attacks

func hst() category { return category{name: "HST"} }
