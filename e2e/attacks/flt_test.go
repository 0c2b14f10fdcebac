package attacks

func flt() category { return category{name: "FLT"} }
