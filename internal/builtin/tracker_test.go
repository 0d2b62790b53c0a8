package builtin

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What a session has read is told once, the newest last and not without end, and
// counts in a session that goes on. What is no record does not.
func TestSeenAgain(t *testing.T) {
	var s Seen
	if list, fresh := s.Fresh(); list != nil || fresh {
		t.Errorf("nothing was read: %v", list)
	}
	for i := range maxSeen + 10 {
		s.note(fmt.Sprintf("/w/%d", i), []byte(fmt.Sprint("content ", i)))
	}
	s.note("/w/3", []byte("other"))
	list, fresh := s.Fresh()
	if !fresh || len(list) != maxSeen || list[0].Path != "/w/11" || list[maxSeen-1].Path != "/w/3" {
		t.Errorf("%d files, from %v to %v", len(list), list[0], list[len(list)-1])
	}
	s.note("/w/4", []byte("content 4"))
	if _, fresh := s.Fresh(); fresh {
		t.Error("a file that is as it was is news")
	}

	var later Seen
	later.Restore(list)
	later.Restore([]SeenFile{{"/w/short", "00"}, {"/w/none", "no hexadecimal digits, but as many as there have to be"[:32]}, {"relative", list[0].Sum}, {"/w/long", list[0].Sum + list[0].Sum}})
	if _, fresh := later.Fresh(); fresh {
		t.Error("what the record has already is news")
	}
	type verdict struct{ Read, Same bool }
	got := map[string]verdict{}
	for path, content := range map[string]string{"/w/3": "other", "/w/200": "content 200", "/w/201": "changed since", "/w/0": "content 0", "/w/short": "", "/w/none": "", "relative": "content 11", "/w/long": "content 11"} {
		read, same := later.check(path, []byte(content))
		got[path] = verdict{read, same}
	}
	want := map[string]verdict{"/w/3": {true, true}, "/w/200": {true, true}, "/w/201": {true, false}, "/w/0": {}, "/w/short": {}, "/w/none": {}, "relative": {}, "/w/long": {}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
