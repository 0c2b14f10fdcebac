// Package must ends a test whose set-up fails, with the line of the test. Call [Do] for what returns an error alone,
// and [Get] for what returns a value, too:
//
//	must.Do(t, os.WriteFile(path, data, 0o600))
//	raw := must.Get(os.ReadFile(path))(t)
//
// What a test is about is compared in words of its own: what was done, what came, what was wanted.
package must

import (
	"os"
	"testing"
	"time"
)

// Do ends the test if there is an error.
func Do(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Get returns a function that returns the value, or ends the test if there is an error.
func Get[T any](value T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		Do(t, err)
		return value
	}
}

// PatienceEnv is set to a shorter wait than the tests' own where a test is expected to fail: no load is meant to be
// survived then.
const PatienceEnv = "AILERON_TEST_PATIENCE"

// Patience returns how long a test waits for what only a defect keeps from coming: d, or less if [PatienceEnv] is less.
func Patience(d time.Duration) time.Duration {
	if short, err := time.ParseDuration(os.Getenv(PatienceEnv)); err == nil {
		return min(d, short)
	}
	return d
}

// ShortDir returns a directory that is removed when the test ends. Its path is short: that of a socket is bounded.
func ShortDir(t testing.TB) string {
	t.Helper()
	dir := Get(os.MkdirTemp("", "t-"))(t)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// OpenDir returns a directory as [ShortDir] does, which every user may enter. What cannot be removed of it fails the
// test: a user of a sandbox may have left it there.
func OpenDir(t testing.TB) string {
	t.Helper()
	dir := Get(os.MkdirTemp("", "t-"))(t)
	t.Cleanup(func() { Do(t, os.RemoveAll(dir)) })
	Do(t, os.Chmod(dir, 0o755))
	return dir
}
