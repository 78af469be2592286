package form_test

import (
	"runtime"
	"strings"
	"testing"

	"belfry/pkg/api/console/form"
)

// TestTheCostOfAFormIsThatOfItsBytes, whatever the base and the inputs are.
func TestTheCostOfAFormIsThatOfItsBytes(t *testing.T) {
	s := schemaOf(t, recipe, form.Options{})
	const size = 1 << 20
	for name, base := range map[string]string{
		"deep":  `{"any":` + strings.Repeat(`[`, 900) + strings.Repeat(`]`, 900) + `}`,
		"rows":  `{"tags":[` + strings.Repeat(`"",`, size/3) + `""]}`,
		"text":  `{"title":"` + strings.Repeat(`a`, size) + `"}`,
		"other": `{"other":[` + strings.Repeat(`1,`, size/2) + `1]}`,
		"steps": `{"steps":[` + strings.Repeat(`{},`, 10_000) + `{}]}`,
	} {
		shown, err := s.Show([]byte(base))
		if err != nil {
			t.Logf("%s is refused: %v", name, err)
			continue
		}
		values := sent(shown)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _, _, err = s.Submit([]byte(base), values)
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; err != nil || used > 1<<20+20*uint64(len(base)) {
			t.Errorf("%s of %d bytes takes %d, %v", name, len(base), used, err)
		} else {
			t.Logf("%s of %d bytes takes %d", name, len(base), used)
		}
	}
}
