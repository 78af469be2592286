package programs

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// proxies are the packages of Debian with nginx, Apache and Caddy, and what they need besides the C library.
var proxies = []string{
	"nginx", "apache2-bin", "caddy",
	"libapr1", "libaprutil1", "libbrotli1", "libcrypt1", "libexpat1", "libpcre2-8-0", "libssl3", "libuuid1",
	"media-types", "zlib1g",
}

// HTTPProxies installs nginx, Apache and Caddy, as Debian ships them, and returns the folder that holds their root.
// Packages are unpacked, not installed: that needs no root, changes nothing of the machine, and starts no service.
func HTTPProxies() (string, error) {
	release, err := os.ReadFile("/etc/os-release")
	if err != nil {
		return "", err
	}
	return install(job{name: "proxies", words: append([]string{string(release)}, proxies...), build: unpack})
}

// unpack downloads the packages with lists of its own, and unpacks them.
func unpack(ctx context.Context, _, target string) error {
	for _, program := range []string{"apt-get", "dpkg-deb"} {
		if _, err := exec.LookPath(program); err != nil {
			return errors.New("the tests of proxies need Debian's packages of nginx, Apache and Caddy: there is no " +
				program)
		}
	}
	folder, err := os.MkdirTemp("", "belfry-proxies")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	for _, name := range []string{"lists/partial", "cache/archives/partial", "packages"} {
		if err := os.MkdirAll(filepath.Join(folder, name), 0o700); err != nil {
			return err
		}
	}
	packages := filepath.Join(folder, "packages")
	options := []string{
		"-o", "Dir::State::Lists=" + filepath.Join(folder, "lists"), "-o",
		"Dir::Cache=" + filepath.Join(folder, "cache"),
		"-o", "Debug::NoLocking=1", "-o", "APT::Sandbox::User=", "-q",
	}
	if err := run(ctx, packages, nil, "apt-get", append(options, "update")...); err != nil {
		return err
	}
	if err := run(ctx, packages, nil, "apt-get", append(append(options, "download"), proxies...)...); err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(packages, "*.deb"))
	if err != nil {
		return err
	}
	for _, file := range files {
		if err := run(ctx, packages, nil, "dpkg-deb", "--extract", file, target); err != nil {
			return err
		}
	}
	if len(files) != len(proxies) {
		return errors.New("apt-get has downloaded " + strings.Join(files, " "))
	}
	return nil
}
