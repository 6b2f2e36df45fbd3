package proxy

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
)

var silentLog = log.New(io.Discard, "", 0)

// Event is an event of a watch.
type Event struct {
	Type string // ADDED, MODIFIED, DELETED, BOOKMARK, ERROR
	// Object is the event's object; nil if its kind is unknown.
	Object runtime.Object
	// Cut sends half of the event and then resets the connection.
	Cut bool

	frame []byte // as it arrived
}

// Meta returns the object's metadata; empty without any.
func (e Event) Meta() metav1.Object {
	if object, ok := e.Object.(metav1.Object); ok {
		return object
	}
	return &metav1.ObjectMeta{}
}

// Expired is the event with which the API server says within a watch that it has no history from the version on.
func Expired() Event {
	return Event{Type: "ERROR", Object: &metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
		Code: 410, Reason: metav1.StatusReasonExpired, Message: "too old resource version"}}
}

// WithVersion returns a copy of the event whose object has another resource version.
func (e Event) WithVersion(version string) Event {
	e.Object, e.frame = e.Object.DeepCopyObject(), nil
	e.Object.(metav1.Object).SetResourceVersion(version)
	return e
}

const maxFrame = 16 << 20

// copyEvents passes the events of a watch on, as `change` says.
func copyEvents(out *writer, in io.Reader, contentType string, change func(Event) []Event) error {
	reader := bufio.NewReader(in)
	binaryFrames := strings.HasPrefix(contentType, "application/vnd.kubernetes.protobuf")
	for {
		frame, err := readFrame(reader, binaryFrames)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		event, err := decode(frame, binaryFrames)
		if err != nil {
			return err
		}
		for _, next := range change(event) {
			frame := next.frame
			if frame == nil {
				if frame, err = encode(next, binaryFrames); err != nil {
					return err
				}
			}
			if next.Cut {
				frame = frame[:len(frame)/2]
			}
			if _, err := out.Write(frame); err != nil {
				return err
			}
			if next.Cut {
				out.cut()
			}
		}
	}
}

// readFrame returns an event with its framing: a length before it, or a newline after it.
func readFrame(reader *bufio.Reader, binaryFrames bool) ([]byte, error) {
	if !binaryFrames {
		return reader.ReadBytes('\n')
	}
	head, err := reader.Peek(4)
	if err != nil {
		return nil, err
	}
	length := binary.BigEndian.Uint32(head)
	if length > maxFrame {
		return nil, fmt.Errorf("a frame of %d bytes", length)
	}
	frame := make([]byte, 4+length)
	_, err = io.ReadFull(reader, frame)
	return frame, err
}

func decode(frame []byte, binaryFrames bool) (Event, error) {
	var event metav1.WatchEvent
	var err error
	if binaryFrames {
		err = event.Unmarshal(frame[4:])
	} else {
		err = json.Unmarshal(frame, &event)
	}
	if err != nil {
		return Event{}, fmt.Errorf("watch event: %w", err)
	}
	object, _, err := scheme.Codecs.UniversalDeserializer().Decode(event.Object.Raw, nil, nil)
	if err != nil && !binaryFrames { // A custom resource.
		custom := &unstructured.Unstructured{}
		if err := custom.UnmarshalJSON(event.Object.Raw); err == nil {
			object = custom
		}
	}
	return Event{Type: event.Type, Object: object, frame: frame}, nil
}

func encode(event Event, binaryFrames bool) ([]byte, error) {
	if !binaryFrames {
		data, err := json.Marshal(map[string]any{"type": event.Type, "object": event.Object})
		return append(data, '\n'), err
	}
	raw, err := runtime.Encode(protobuf.NewSerializer(scheme.Scheme, scheme.Scheme), event.Object)
	if err != nil {
		return nil, err
	}
	body, err := (&metav1.WatchEvent{Type: event.Type, Object: runtime.RawExtension{Raw: raw}}).Marshal()
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...), err
}
