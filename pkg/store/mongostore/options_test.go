package mongostore

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
)

// TestWritesAreAcknowledgedByTheJournalsOfAMajority: no option of the URL weakens the consistency.
func TestWritesAreAcknowledgedByTheJournalsOfAMajority(t *testing.T) {
	for _, url := range []string{
		"mongodb://localhost", "mongodb://localhost/?w=1&journal=false&readConcernLevel=local&readPreference=nearest",
	} {
		o := options.Client().ApplyURI(url)
		setDefaults(o)
		if w := o.WriteConcern; w == nil || w.W != "majority" || w.Journal == nil || !*w.Journal {
			t.Errorf("%s: the write concern is %+v, want majority with journal", url, w)
		}
		if r := o.ReadConcern; r == nil || r.Level != "majority" {
			t.Errorf("%s: the read concern is %+v, want majority", url, r)
		}
		if p := o.ReadPreference; p == nil || p.Mode() != readpref.PrimaryMode {
			t.Errorf("%s: the read preference is %v, want primary", url, p)
		}
	}
}
