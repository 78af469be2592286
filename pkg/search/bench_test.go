package search

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// BenchmarkBuild measures how long an index of 10,000 texts of a hundred words takes to build, and its size.
func BenchmarkBuild(b *testing.B) {
	texts := textsOf(10_000, 100)
	for _, of := range []struct{ name, language, rule string }{{"none shared", "", ""}, {"en shared", "en", ""},
		{"de shared", "de", ""}, {"none own", "", "x"}, {"en own", "en", "x"}} {
		b.Run(of.name, func(b *testing.B) {
			for range b.N {
				before := processorTime(b)
				folder := filepath.Join(b.TempDir(), "index")
				x, err := newIndex(folder, Settings{Fields: []string{"text"}, Language: of.language, Rule: of.rule})
				if err != nil {
					b.Fatal(err)
				}
				batch := x.batch()
				for i, text := range texts {
					document := map[string]any{fieldName(0): []any{text}}
					if of.rule != "" {
						document[termsField] = []string{fmt.Sprint("user", i%100)}
					}
					if err := batch.batch.Index(fmt.Sprintf("%036d", i), document); err != nil {
						b.Fatal(err)
					}
					if batch.full() || i == len(texts)-1 {
						if err := batch.write(b.Context(), &position{Sequence: uint64(i)}); err != nil { //nolint:gosec // not negative
							b.Fatal(err)
						}
					}
				}
				if err := x.awaitDisk(b.Context(), 1); err != nil {
					b.Fatal(err)
				}
				x.close()
				b.StopTimer()
				b.ReportMetric(float64(sizeOf(b, folder))/(1<<20), "MiB")
				// The wall clock depends on what else runs.
				b.ReportMetric((processorTime(b) - before).Seconds(), "cpu-s")
				b.StartTimer()
			}
		})
	}
}

// textsOf makes texts, in which few words are frequent and most are rare, as in those that people write. Some are in
// upper case, some have accents, and some are joined.
func textsOf(n, size int) []string {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same texts each time
	syllables := strings.Fields("ka lo min ter sa pré ver no tri mel dó run ger wal fen bri cor tas pil hum ée " +
		"gra stu ox")
	endings := strings.Fields("s ing ed er ly tion ment ness . .")
	words := make([]string, 20_000)
	for i := range words {
		for range 1 + random.IntN(3) {
			words[i] += syllables[random.IntN(len(syllables))]
		}
		words[i] += strings.TrimSuffix(endings[random.IntN(len(endings))], ".")
	}
	frequent := rand.NewZipf(random, 1.1, 4, uint64(len(words)-1))
	texts := make([]string, n)
	for i := range texts {
		var text strings.Builder
		for j := range size {
			word := words[frequent.Uint64()]
			switch {
			case j%10 == 0:
				word = strings.ToUpper(word[:1]) + word[1:]
			case j%30 == 7:
				word += "-" + words[frequent.Uint64()]
			case j%50 == 9:
				word = "the"
			}
			text.WriteString(word + " ")
		}
		texts[i] = text.String()
	}
	return texts
}

// processorTime is what the process has used.
func processorTime(tb testing.TB) time.Duration {
	tb.Helper()
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func sizeOf(tb testing.TB, folder string) (size int64) {
	tb.Helper()
	err := filepath.WalkDir(folder, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err == nil {
			size += info.Size()
		}
		return err
	})
	if err != nil {
		tb.Fatal(err)
	}
	return size
}

// BenchmarkAnalyze measures what a language makes of a text of a hundred words.
func BenchmarkAnalyze(b *testing.B) {
	texts := textsOf(1000, 100)
	for _, language := range []string{"", "en", "de", "fr", "cjk"} {
		l, err := languageOf(language)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(language, func(b *testing.B) {
			for i := range b.N {
				analyzer{l, asWords}.Analyze([]byte(texts[i%len(texts)]))
			}
		})
	}
}
