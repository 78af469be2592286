package app

import (
	"errors"
	"strings"
	"testing"

	"belfry/config"
	"belfry/pkg/errs"
)

// A process with some of the roles needs a bus and backends that it can share with
// others. The error names all that are missing.
func TestRolesNeedASharedBusAndSharedStores(t *testing.T) {
	p := newPlace(t, "")
	c := p.load(`stores: {Books: {expose: {}}}
binaries: {files: {type: FileStorage}}
mailers: {default: {type: file}}
authentication: {providers: {email: {from: a@example.com, mailer: default}}}
`)
	for _, known := range [][]string{{"frnt"}, {"front", ""}} {
		_, err := Start(t.Context(), c, p.log(), known...)
		if !errors.Is(err, errs.Invalid) ||
			!strings.Contains(err.Error(), "expected one of front, search, mapping, cascade, mail, sweep") {
			t.Errorf("%q: %v", known, err)
		}
	}
	_, err := Start(t.Context(), c, p.log(), "mail")
	var problems config.Problems
	if !errors.As(err, &problems) {
		t.Fatalf("%v", err)
	}
	for _, says := range []string{
		"the embedded bus is inside one process", "stores.Books: with --role several processes use the store",
		"binaries.files: with --role", "baseURL: is required with --role mail",
	} {
		if !strings.Contains(err.Error(), says) {
			t.Errorf("it is not said that %s:\n%v", says, err)
		}
	}
	// What to do is said once for all stores of a backend, and once for all storages.
	c = p.load(`stores: {Books: {expose: {}}, Authors: {}, Pages: {}}
binaries: {files: {type: FileStorage}, more: {type: FileStorage, expose: {url: /more}}}
`)
	_, err = Start(t.Context(), c, p.log(), "mapping")
	if !errors.As(err, &problems) || len(problems) != 3 || strings.Count(err.Error(), "mongodb or dynamodb") != 1 ||
		!strings.Contains(err.Error(), "stores.Authors: with --role several processes use the store: it and 2 other "+
			"stores can't be in backend default") || !strings.Contains(err.Error(),
		"binaries.files: with --role several processes use the storage: it and 1 other service can't") {
		t.Errorf("%v", err)
	}
	if _, err := Start(t.Context(), c, p.log(), "front"); err == nil || strings.Contains(err.Error(), "baseURL") {
		t.Errorf("a front: %v", err)
	}
}
