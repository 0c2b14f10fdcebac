// Package review answers a reviewer's questions from an audit log: which agent a row is of, what became of an
// exchange, and who used which credential. It returns values; what prints or serves them is elsewhere.
//
// It reads rows and writes none.
package review
