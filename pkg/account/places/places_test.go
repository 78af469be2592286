package places

import (
	"encoding/binary"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
)

// file is a database of some networks, which MaxMind publishes for tests.
func file(t *testing.T) []byte {
	t.Helper()
	data, err := os.ReadFile("testdata/GeoLite2-City-Test.mmdb")
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func open(t *testing.T, data []byte) *Database {
	t.Helper()
	d, err := Open(data)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestPlacesOfAddresses(t *testing.T) {
	d := open(t, file(t))
	for address, want := range map[string]string{
		"89.160.20.112": "Linköping, Sweden", "::ffff:89.160.20.112": "Linköping, Sweden", "2001:218::1": "Japan",
		"203.0.113.1": "", "127.0.0.1": "", "": "", "nowhere": "", "89.160.20.112:80": "",
	} {
		if got := d.Of(address).String(); got != want {
			t.Errorf("%s is in %q, want %q", address, got, want)
		}
	}
	if p := d.Of("89.160.20.112"); p == nil || p.CountryCode != "SE" {
		t.Errorf("the place is %+v", p)
	}
	if p := (*Database)(nil).Of("89.160.20.112"); p != nil {
		t.Errorf("without a database the place is %v", p)
	}
}

// Also a database that has a place for them.
func TestPrivateAddressesHaveNoPlace(t *testing.T) {
	d := open(t, everywhere("Test-City", "Sweden"))
	if got := d.Of("89.160.20.112").String(); got != "Sweden" {
		t.Fatalf("a public address is in %q", got)
	}
	for _, address := range []string{
		"127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.0.1", "0.0.0.0", "255.255.255.255", "224.0.0.1",
		"::1", "::", "fe80::1", "fe80::1%eth0", "fc00::1", "fd12::1", "ff02::1", "::ffff:10.1.2.3", "::ffff:127.0.0.1",
	} {
		if p := d.Of(address); p != nil {
			t.Errorf("%s is in %v", address, p)
		}
	}
}

func TestWhatIsNoDatabaseOfPlacesIsRefused(t *testing.T) {
	for name, data := range map[string][]byte{"empty": nil, "a text": []byte("places"), "half of one": file(t)[:9000]} {
		if _, err := Open(data); err == nil || !strings.Contains(err.Error(), "not a database in MaxMind's format") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Open(everywhere("Test-ASN", "Sweden")); err == nil ||
		!strings.Contains(err.Error(), `not of type "Test-ASN"`) {
		t.Errorf("a database of other things: %v", err)
	}
}

// A damaged file is refused, or has other places: it ends no process.
func TestADamagedDatabaseDoesNotPanic(t *testing.T) {
	whole := file(t)
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		data := slices.Clone(whole)
		for range 1 + random.IntN(20) {
			data[random.IntN(len(data))] = byte(random.Uint32())
		}
		d, err := Open(data)
		if err != nil {
			continue
		}
		for _, address := range []string{"89.160.20.112", "2001:218::1", "203.0.113.1"} {
			_ = d.Of(address).String()
		}
	}
}

// everywhere returns a database of a type in which every address is in a country: a tree of one node, both branches of
// which lead to the same record. See https://maxmind.github.io/MaxMind-DB/.
func everywhere(kind, country string) []byte {
	text := func(s string) []byte { return append([]byte{2<<5 | byte(len(s))}, s...) }
	number := func(n uint16) []byte { return binary.BigEndian.AppendUint16([]byte{5<<5 | 2}, n) }
	object := func(members ...[]byte) []byte {
		return append([]byte{7<<5 | byte(len(members)/2)}, slices.Concat(members...)...)
	}
	const nodes, separator = 1, 16
	tree := []byte{0, 0, nodes + separator, 0, 0, nodes + separator}
	record := object(text("country"), object(text("names"), object(text("en"), text(country))))
	metadata := object(
		text("binary_format_major_version"), number(2), text("database_type"), text(kind), text("ip_version"),
		number(6), text("node_count"), number(nodes), text("record_size"), number(24),
	)
	return slices.Concat(tree, make([]byte, separator), record, []byte("\xab\xcd\xefMaxMind.com"), metadata)
}
