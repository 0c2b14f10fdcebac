package attacks

func cas() category { return category{name: "CA"} }
