package mongostore

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"

	"belfry/pkg/store/driver"
)

// InsertTogether makes creates in one command, as concurrent ones are when connections are scarce. It returns
// the errors before any is repeated.
func InsertTogether(ctx context.Context, in driver.Store, writes ...driver.Write) []error {
	s := in.(*store)
	var docs []bson.Raw
	for i := range writes {
		fields, err := s.document(&writes[i])
		if err != nil {
			return []error{err}
		}
		doc, err := bson.Marshal(fields)
		if err != nil {
			return []error{err}
		}
		docs = append(docs, doc)
	}
	return s.insert(ctx, docs)
}

// RolledBack reports whether a create is repeated after an error of its batch.
func RolledBack(err error) bool { return rolledBack(err) }
