// Package places finds the places of network addresses in a database in MaxMind's format.
package places

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/oschwald/maxminddb-golang/v2"
)

// MaxSize is the maximum size of a database.
const MaxSize = 512 << 20

// Place is the place of a network address in a database.
type Place struct {
	City        string `json:"city,omitempty"`        // in English
	Country     string `json:"country,omitempty"`     // in English
	CountryCode string `json:"countryCode,omitempty"` // ISO 3166-1, two letters
}

// String returns the place for people.
func (p *Place) String() string {
	switch {
	case p == nil:
		return ""
	case p.City == "" || p.Country == "":
		return p.City + p.Country
	default:
		return p.City + ", " + p.Country
	}
}

// Database has the places of networks. It is safe for concurrent use.
type Database struct {
	reader *maxminddb.Reader
	sum    [sha256.Size]byte
}

// Open returns the database that a file contains. It reads the content into memory: if the file were mapped,
// overwriting it in place would crash the process.
func Open(content []byte) (*Database, error) {
	reader, err := maxminddb.OpenBytes(content)
	if err != nil {
		return nil, errors.New("the file is not a database in MaxMind's format (.mmdb)")
	}
	if kind := reader.Metadata.DatabaseType; !strings.Contains(kind, "City") && !strings.Contains(kind, "Country") {
		return nil, fmt.Errorf("expected a database of cities or countries, not of type %q", kind)
	}
	return &Database{reader, sha256.Sum256(content)}, nil
}

// Sum is the digest of the content.
func (d *Database) Sum() [sha256.Size]byte { return d.sum }

// Of returns the place of a network address; nil if the database lacks it, for private addresses, and without a
// database.
func (d *Database) Of(address string) *Place {
	if d == nil {
		return nil
	}
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return nil
	}
	if ip = ip.Unmap().WithZone(""); !ip.IsGlobalUnicast() || ip.IsPrivate() {
		return nil
	}
	var record struct {
		City    names `maxminddb:"city"`
		Country names `maxminddb:"country"`
	}
	if d.reader.Lookup(ip).Decode(&record) != nil {
		return nil
	}
	p := Place{City: record.City.Names.English, Country: record.Country.Names.English, CountryCode: record.Country.Code}
	if p == (Place{}) {
		return nil
	}
	return &p
}

// names are those of a city or a country.
type names struct {
	Code  string `maxminddb:"iso_code"`
	Names struct {
		English string `maxminddb:"en"`
	} `maxminddb:"names"`
}
