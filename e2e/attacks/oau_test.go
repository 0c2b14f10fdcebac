package attacks

func oau() category { return category{name: "OAU"} }
