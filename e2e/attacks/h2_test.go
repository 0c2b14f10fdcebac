package attacks

func h2() category { return category{name: "H2"} }
