package attacks

func aut() category { return category{name: "AUT"} }
