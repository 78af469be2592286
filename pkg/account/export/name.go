package export

import (
	"encoding/hex"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"crypto/sha256"

	"belfry/pkg/binary"
)

// Maximum sizes of a name and of a property in the path of a file, in bytes: file systems limit elements to 255 bytes.
const (
	maxName     = 180
	maxProperty = 120
)

func sorted(services map[string]string) []string { return slices.Sorted(maps.Keys(services)) }

// nameOf returns the path of a file in the archive. Extracted files are below files/, independently of the names that
// the uploading clients have chosen: such names are only for display.
func nameOf(p binary.Place, name string) string {
	base := fmt.Sprint(p.Index)
	if name = safeName(name); name != "" {
		base += "-" + name
	}
	return strings.Join([]string{"files", p.Store, p.UUID, safeProperty(p.Property), base}, "/")
}

// safeName returns a name without characters that are special to a file system or a program.
func safeName(name string) string {
	name = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) || strings.ContainsRune(`/\:*?"<>|`, r) {
			return '_'
		}
		return r
	}, name)
	if len(name) > maxName {
		extension := path.Ext(name)
		if len(extension) > 20 {
			extension = ""
		}
		end := maxName - len(extension)
		for !utf8.RuneStart(name[end]) {
			end--
		}
		name = name[:end] + extension
	}
	return strings.TrimRight(name, ". ")
}

// safeProperty returns a property as an element of a path: no two have the same.
func safeProperty(property string) string {
	var b strings.Builder
	for i := range len(property) {
		c := property[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	if b.Len() == 0 || b.Len() > maxProperty {
		sum := sha256.Sum256([]byte(property))
		return "%-" + hex.EncodeToString(sum[:])
	}
	return b.String()
}
