package sse_test

import (
	"fmt"
	"testing"

	"belfry/pkg/sse"
	"belfry/pkg/store/policy"
)

// What it costs to judge an event for a user of many, each with a session: of
// 1,000 users at 200 events a second that is 200,000 a second.
func BenchmarkAuthorize(b *testing.B) {
	for name, rules := range map[string]policy.Rules{
		"owner":  {Owner: true},
		"rule":   {Get: `object.public == true || object.user == user.uuid`},
		"shared": {Get: `user != null`},
	} {
		b.Run(name, func(b *testing.B) {
			judge := sse.Authorizer(b, rules, []byte(`{"uuid":"n","user":"user-7","public":false,"title":"The Adventures of Sherlock Holmes","year":1892}`))
			var viewers []*sse.Viewer
			for i := range 1000 {
				viewers = append(viewers, user(fmt.Sprintf("user-%d", i)))
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				judge(i%len(viewers) == 0, viewers[i%len(viewers)])
			}
		})
	}
}
