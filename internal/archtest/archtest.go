// Package archtest holds the rules of the repository that no compiler checks. It has tests only, reads sources
// without compiling them, and so takes milliseconds:
//
//   - arrows_test.go: which of our packages may import which;
//   - owners_test.go: which files may import a third-party module, and what that module is for;
//   - words_test.go: the words, and the length of a line, in code, comments and documentation;
//   - links_test.go: the links of the manual lead somewhere;
//   - paths_test.go: the files and packages that the manual names are there.
//
// Each row of a table has its reason, and a row that nothing uses any more fails as well: the tables state what is,
// not what once was.
package archtest
