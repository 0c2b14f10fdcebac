//go:build !amd64

package main

func legacy() {}

func legacyChild(string) error { return nil }
