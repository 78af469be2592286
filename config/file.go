package config

import (
	"belfry/config/decode"
	"belfry/config/value"
)

// PathUse is how belfry uses the file or folder at a path.
type PathUse = value.PathUse

// ReadFile is a file that belfry reads, WrittenFolder a folder that it writes, and ServedFolder one whose files are for
// clients, or are templates of what clients get.
const (
	ReadFile      = value.ReadFile
	WrittenFolder = value.WrittenFolder
	ServedFolder  = value.ServedFolder
)

type (
	// Path is a file or a folder that a configuration names, by a key or by the default of one.
	Path = decode.Path

	// Problem is an error in a configuration, with its position.
	Problem = decode.Problem

	// Problems are all of them, in the order of the file.
	Problems = decode.Problems

	// Lookup returns an environment variable, as os.LookupEnv does.
	Lookup = decode.Lookup

	// Secret is a text that formatting, logging and JSON show as "[secret]".
	Secret = decode.Secret

	// Change is a difference between two configurations, and the effect of a reload on it.
	Change = decode.Change
)

// Paths returns all files and folders that the configuration names, the file of the configuration itself included,
// which has no key.
func (c *Config) Paths() []Path { return c.doc.Paths() }

// IsSet reports whether a key is in the file.
func (c *Config) IsSet(key string) bool { return c.doc.IsSet(key) }

// File is the file that the configuration was read from.
func (c *Config) File() string { return c.doc.File() }

// Shown is the configuration as it was read, as YAML for people: without comments, and with "[secret]" in place of what
// messages must not quote either. "" if it was not read from a file.
func (c *Config) Shown() string {
	if c.doc == nil {
		return ""
	}
	return c.doc.Shown()
}

// HiddenKeys returns the keys of a file whose values Shown hides, as the keys from the root; of an item of a list, the
// key of the list.
func HiddenKeys(c *Config) [][]string { return c.doc.HiddenKeys() }

// Secrets returns the values of all secrets, for what must not print them: passwords, tokens, keys, and URLs that have
// a password.
func (c *Config) Secrets() []string { return decode.Secrets(c) }

// Suggest returns advice about an unknown name: the known one that is most similar, or which there are.
func Suggest(name string, known []string) string { return decode.Suggest(name, known) }

// NamesPath reports whether the value of a key is the path of a file or folder. The key is as the keys from the root,
// without indexes of lists.
func NamesPath(keys []string) bool { return decode.NamesPath[Config](keys) }

// SecretKey reports whether messages must not quote the values of keys with a name.
func SecretKey(name string) bool { return decode.SecretLike(name) }
