// Package count writes how many there are of something, for people.
package count

import "fmt"

// Of returns a number with its noun: "1 object", "2 objects". plural is that of a noun to which an s is not enough.
func Of[N int | int64 | uint64](n N, noun string, plural ...string) string {
	return fmt.Sprint(n, " ", Noun(n, noun, plural...))
}

// Bytes writes a number of bytes with a unit: "3.5 MiB".
func Bytes(n int64) string {
	for _, unit := range []struct {
		bytes int64
		name  string
	}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if n >= unit.bytes {
			return fmt.Sprintf("%.1f %s", float64(n)/float64(unit.bytes), unit.name)
		}
	}
	return Of(n, "byte")
}

// Noun returns only the noun of a number.
func Noun[N int | int64 | uint64](n N, noun string, plural ...string) string {
	switch {
	case n == 1:
		return noun
	case len(plural) > 0:
		return plural[0]
	default:
		return noun + "s"
	}
}
