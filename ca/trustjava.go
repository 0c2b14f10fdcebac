package ca

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/ALRubinger/aileron/internal/hint"
)

// truststore's own handling of Java is not used: it knows the Java of JAVA_HOME alone, runs sudo, and has keytool write
// into the file that every Java of the machine reads.

func (s Store) addJava(ctx context.Context, root *x509.Certificate) error {
	return s.editJava(ctx, root, true, func(copied string) error {
		return s.keytool(ctx, encodePEM(root), copied, "-importcert", "-noprompt", "-alias", fileName(root))
	})
}

// removeJava removes the root under its alias, and under that of Debian's hook.
func (s Store) removeJava(ctx context.Context, root *x509.Certificate) error {
	return s.editJava(ctx, root, false, func(copied string) error {
		for _, alias := range []string{fileName(root), "debian:" + fileName(root) + ".pem"} {
			err := s.keytool(ctx, nil, copied, "-delete", "-alias", alias)
			failed := (*toolError)(nil)
			if err != nil && !(errors.As(err, &failed) && strings.Contains(failed.out, "does not exist")) {
				return err
			}
		}
		return nil
	})
}

// editJava calls edit with a copy of the store, which then replaces it: a Java that starts meanwhile reads one or the
// other, and a kill leaves one of them. want is whether the store has the root afterwards.
func (s Store) editJava(ctx context.Context, root *x509.Certificate, want bool, edit func(copied string) error) error {
	unlock, err := lockDir(ctx, filepath.Dir(s.Path))
	if err != nil {
		return err
	}
	defer unlock()
	before, info, err := readStore(s.Path)
	if err != nil {
		return err
	}
	roots, err := JavaRoots(before)
	if err != nil {
		return hint.New(err, "give Java the root alone: aileron ca show SESSION --pem, and keytool -importcert")
	}
	if holds(roots, root) == want {
		return nil
	}
	copied := filepath.Join(filepath.Dir(s.Path), ".aileron-cacerts")
	if err := copyStore(copied, before); err != nil {
		return err
	}
	defer os.Remove(copied)
	if err := edit(copied); err != nil {
		return err
	}
	after, _, err := readStore(copied)
	if err == nil {
		roots, err = JavaRoots(after)
	}
	if err != nil || holds(roots, root) != want {
		return errors.Join(errors.New("keytool has not changed the store"), err)
	}
	return replaceStore(copied, s.Path, info)
}

// maxJavaStore bounds what is read of a cacerts.
const maxJavaStore = 64 << 20

func readStore(path string) ([]byte, os.FileInfo, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file", path)
	}
	if err != nil {
		return nil, nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxJavaStore+1))
	if err == nil && len(data) > maxJavaStore {
		err = fmt.Errorf("%s has more than %d bytes", path, maxJavaStore)
	}
	return data, info, err
}

// copyStore writes a new file, in place of one that a killed command left.
func copyStore(path string, data []byte) error {
	_ = os.Remove(path)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

// replaceStore replaces the store by the copy, with the rights of the store.
func replaceStore(copied, path string, as os.FileInfo) error {
	f, err := os.OpenFile(copied, os.O_RDWR|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	if st, ok := as.Sys().(*syscall.Stat_t); ok {
		err = f.Chown(int(st.Uid), int(st.Gid))
	}
	if err = errors.Join(err, f.Chmod(as.Mode().Perm()), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(copied, path)
}

func (s Store) keytool(ctx context.Context, stdin []byte, store string, args ...string) error {
	tool, err := s.findKeytool()
	if err != nil {
		return err
	}
	// A Java that lives for a second is done before its compilers have made it quicker.
	_, err = runTool(ctx, stdin, tool, append(args, "-keystore", store, "-storepass", javaPassword, "-J-Duser.language=en",
		"-J-XX:+IgnoreUnrecognizedVMOptions", "-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC")...)
	return err
}

// findKeytool returns the keytool of the Java whose store this is, or else another one.
func (s Store) findKeytool() (string, error) {
	home := filepath.Dir(filepath.Dir(filepath.Dir(s.Path))) // of lib/security/cacerts
	candidates := []string{filepath.Join(home, "bin/keytool"), filepath.Join(home, "../bin/keytool")}
	if found, err := findTool("keytool"); err == nil {
		candidates = append(candidates, found)
	}
	installed, _ := filepath.Glob("/usr/lib/jvm/*/bin/keytool")
	for _, path := range append(candidates, installed...) {
		if info, err := os.Stat(path); err == nil && info.Mode()&0o111 != 0 && !info.IsDir() {
			return path, nil
		}
	}
	return "", hint.New(errors.New("keytool is not installed"), "install a Java, such as the package default-jre-headless")
}
