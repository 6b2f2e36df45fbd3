package recorder

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/NVIDIA/go-nvlib/pkg/nvlib/device"
	"sigs.k8s.io/yaml"

	spec "github.com/NVIDIA/k8s-device-plugin/api/config/v1"
	"github.com/NVIDIA/k8s-device-plugin/internal/lm"
	"github.com/NVIDIA/k8s-device-plugin/internal/resource"
	"github.com/NVIDIA/k8s-device-plugin/internal/vgpu"
)

// node is what NVIDIA's GPU Feature Discovery and device plugin publish about a machine.
type node struct {
	labels    map[string]string
	resources map[string]int
}

// config is the configuration that the program makes from their flags and file.
func (m machine) config(dmiFile string) (*spec.Config, error) {
	yes, mig := true, m.mig
	if mig == "" {
		mig = spec.MigStrategyNone
	}
	config := &spec.Config{Version: spec.Version}
	config.Flags.MigStrategy = &mig
	config.Flags.FailOnInitError = &yes
	config.Flags.GFD = &spec.GFDCommandLineFlags{Oneshot: &yes, NoTimestamp: &yes, MachineTypeFile: &dmiFile}
	if err := yaml.Unmarshal([]byte(m.share), &config.Sharing); err != nil {
		return nil, fmt.Errorf("sharing: %w", err)
	}
	spec.DisableResourceNamingInConfig(config)
	return config, nil
}

// publish calls what GPU Feature Discovery's main calls: its labelers, and its writer of the file that Node Feature
// Discovery reads.
func (m machine) publish(folder string) (*node, error) {
	dmiFile := filepath.Join(folder, "product_name")
	if err := os.WriteFile(dmiFile, []byte(m.dmi+"\n"), 0o600); err != nil {
		return nil, err
	}
	config, err := m.config(dmiFile)
	if err != nil {
		return nil, err
	}
	library, err := m.library()
	if err != nil {
		return nil, err
	}
	devices := device.New(library)
	labeler, err := lm.NewLabelers(computeCards{resource.NewNVMLManager(library, devices)}, vgpu.NewVGPULib(noPCI{}), config)
	if err != nil {
		return nil, err
	}
	labels, err := labeler.Labels()
	if err != nil {
		return nil, err
	}
	file := filepath.Join(folder, "gfd")
	if err := lm.ToFile(file).Output(labels); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	n := &node{labels: map[string]string{}, resources: map[string]int{}}
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		n.labels[key] = value
	}

	n.addResources(m, config)
	return n, nil
}

// addResources sets the amounts that the device plugin would serve. It is not run: its list of devices does not
// compile with the mocks' version of NVML. By its rules, a GPU with MIG on is not a nvidia.com/gpu (unless the strategy
// is single, where its MIG devices are), GPUs of all models are, and a shared resource may have another name.
func (n *node) addResources(m machine, config *spec.Config) {
	renamed := map[string]string{}
	for _, shared := range config.Sharing.ReplicatedResources().Resources {
		if shared.Rename != "" {
			renamed[string(shared.Name)] = string(shared.Rename)
		}
	}
	for key := range n.labels {
		name, found := strings.CutSuffix(key, ".count")
		if !found {
			continue
		}
		count := n.number(key)
		if name == "nvidia.com/gpu" && m.mig != spec.MigStrategySingle {
			count = len(m.gpus)
			for _, cut := range m.cut {
				count -= len(cut.gpus)
			}
		}
		count *= max(1, n.number(name+".replicas"))
		if other := renamed[name]; other != "" {
			name = other
		}
		if count > 0 {
			n.resources[name] = count
		}
	}
}

func (n *node) number(label string) int {
	number, _ := strconv.Atoi(n.labels[label])
	return number
}

// computeCards gives GPUs the PCI class of cards without display outputs, which would come from /sys.
type computeCards struct{ resource.Manager }

type computeCard struct{ resource.Device }

func (computeCard) GetPCIClass() (uint32, error) { return 0x030200, nil }

func (c computeCards) GetDevices() ([]resource.Device, error) {
	devices, err := c.Manager.GetDevices()
	for i := range devices {
		devices[i] = computeCard{devices[i]}
	}
	return devices, err
}

// noPCI is a machine that is not a guest with a virtual GPU.
type noPCI struct{}

func (noPCI) Devices() ([]*vgpu.PCIDevice, error) { return nil, nil }

// version is the version of a module that this program is built with.
func version(path string) (string, error) {
	text, err := exec.Command("go", "list", "-m", "-f", "{{.Version}}", path).Output()
	return strings.TrimSpace(string(text)), err
}
