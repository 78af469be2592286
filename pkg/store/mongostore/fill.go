package mongostore

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"belfry/pkg/store/driver"
)

// fillRecords is the number of records whose keys are updated together.
const fillRecords = 200

// fill updates the keys of all live records page by page, so that no cursor has to
// stay open for long.
func (s *store) fill(ctx context.Context, keys func(body []byte) []driver.Key) error {
	var after []byte
	for {
		page, err := s.Scan(ctx, after, fillRecords)
		if err != nil {
			return err
		}
		if err := s.refill(ctx, page.Records, keys); err != nil {
			return err
		}
		if page.Next == nil {
			return nil
		}
		after = page.Next
	}
}

// refill updates the keys of records. A record that was changed after it was read got
// its keys from that write.
func (s *store) refill(ctx context.Context, records []driver.Record, keys func(body []byte) []driver.Key) error {
	changes := make([]mongo.WriteModel, len(records))
	for i, r := range records {
		set, unset, err := s.updateKeys(r.UUID, keys(r.Body))
		if err != nil {
			return err
		}
		var change bson.D
		if len(set) > 0 {
			change = append(change, bson.E{Key: "$set", Value: set})
		}
		if len(unset) > 0 {
			change = append(change, bson.E{Key: "$unset", Value: unset})
		}
		same := bson.D{{Key: idField, Value: r.UUID}, {Key: revisionField, Value: revisionText(r.Revision)}}
		changes[i] = mongo.NewUpdateOneModel().SetFilter(same).SetUpdate(change)
	}
	return s.wrapError(ctx, "fill an index of", s.bulkWrite(ctx, s.collection, changes))
}
