package console

import (
	"bytes"
	"testing"

	"belfry/internal/gunzip"
)

// Large files are embedded compressed; who takes none gets the same.
func TestEveryAssetIsTheSameWithAndWithoutCompression(t *testing.T) {
	all := loadAssets()
	for name, f := range all.byName {
		if plain := f.content(); len(plain) == 0 || !bytes.Equal(plain, gunzip.Bytes(f.compressed())) {
			t.Errorf("%s has %d bytes, and others compressed", name, len(plain))
		}
	}
	for name, begins := range map[string]string{"swagger-ui.js": "/*! For license information",
		"swagger-ui.css": ".", "codemirror.js": "", "htmx.min.js": "var htmx="} {
		if f := all.byName[name]; f == nil || f.contentType == "" || !bytes.HasPrefix(f.content(), []byte(begins)) {
			t.Errorf("%s is not what pages load", name)
		}
	}
}
