package attacks

func utl() category { return category{name: "UTL"} }
