// Package recorder prints the labels that NVIDIA's GPU Feature Discovery writes for machines that NVIDIA's own mock of
// NVML describes. The labels come from GPU Feature Discovery's code; only NVML and the PCI class are not real.
package recorder

import (
	"fmt"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/gpus"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/server"
)

// machine is a node with GPUs, and the flags and configuration file of GPU Feature Discovery on it.
type machine struct {
	name  string
	what  string // For the comment above the recorded node.
	dmi   string // What /sys/class/dmi/id/product_name says.
	gpus  []gpus.Config
	mig   string // --mig-strategy; empty: none.
	cut   []cut
	share string // The `sharing` of the configuration file.
	// Cluster and clique of the NVLink fabric; nil: not attached to one.
	fabric *nvml.GpuFabricInfo
	// With several models: the product to record, of those that the publisher chooses from.
	chosen string
}

// cut is the MIG devices of some GPUs: profiles are nvml.GPU_INSTANCE_PROFILE_….
type cut struct {
	gpus     []int
	profiles []int
}

// The mock's names and sizes of memory are partly not those of the real library. named replaces them with what
// nvidia-smi, which prints NVML's values, shows on such a machine.
func named(base gpus.Config, name string, memoryMiB uint64) gpus.Config {
	base.Name, base.MemoryMB = name, memoryMiB
	return base
}

// without is a GPU that no mock describes: only what the labels are made from, and no MIG.
func without(name string, memoryMiB uint64, major, minor int) gpus.Config {
	return gpus.Config{Name: name, MemoryMB: memoryMiB, CudaMajor: major, CudaMinor: minor}
}

var (
	a100x40 = named(gpus.A100_SXM4_40GB, "NVIDIA A100-SXM4-40GB", 40960)
	a100x80 = named(gpus.A100_SXM4_80GB, "NVIDIA A100-SXM4-80GB", 81920)
	a100p80 = named(gpus.A100_PCIE_80GB, "NVIDIA A100 80GB PCIe", 81920)
	a30     = named(gpus.A30_PCIE_24GB, "NVIDIA A30", 24576)
	h100    = named(gpus.H100_SXM5_80GB, "NVIDIA H100 80GB HBM3", 81559)
	h100p   = named(gpus.H100_SXM5_80GB, "NVIDIA H100 PCIe", 81559)
	h100nvl = named(gpus.H100_SXM5_80GB, "NVIDIA H100 NVL", 95830)
	h200    = named(gpus.H200_SXM5_141GB, "NVIDIA H200", 143771)
	b200    = named(gpus.B200_SXM5_180GB, "NVIDIA B200", 183359)
	gb200   = named(gpus.B200_SXM5_180GB, "NVIDIA GB200", 189471)
	t4      = without("Tesla T4", 15360, 7, 5)
	v100    = without("Tesla V100-SXM2-32GB", 32768, 7, 0)
	l4      = without("NVIDIA L4", 23034, 8, 9)
	l40s    = without("NVIDIA L40S", 46068, 8, 9)
	rtx6000 = without("NVIDIA RTX PRO 6000 Blackwell Server Edition", 97887, 12, 0)
)

func times(count int, gpu gpus.Config) []gpus.Config { return gpus.Multiple(count, gpu) }

func upTo(count int) []int {
	numbers := make([]int, count)
	for i := range numbers {
		numbers[i] = i
	}
	return numbers
}

const (
	oneSlice    = nvml.GPU_INSTANCE_PROFILE_1_SLICE
	twoSlices   = nvml.GPU_INSTANCE_PROFILE_2_SLICE
	threeSlices = nvml.GPU_INSTANCE_PROFILE_3_SLICE
)

var sevenths = []int{oneSlice, oneSlice, oneSlice, oneSlice, oneSlice, oneSlice, oneSlice}

func machines() []machine {
	return []machine{
		{name: "dgx-a100", what: "mock dgxa100", dmi: "DGXA100 920-23687-2530-000", gpus: times(8, a100x40)},
		{name: "dgx-a100-80gb", what: "mock dgxa100 with A100_SXM4_80GB", dmi: "DGXA100 920-23687-2530-000", gpus: times(8, a100x80)},
		{name: "dgx-h100", what: "mock dgxh100", dmi: "DGXH100", gpus: times(8, h100)},
		{name: "dgx-h200", what: "mock dgxh200", dmi: "DGXH200", gpus: times(8, h200)},
		{name: "dgx-b200", what: "mock dgxb200", dmi: "DGXB200", gpus: times(8, b200)},
		{name: "gb200-nvl72", what: "a tray of GB200 NVL72: mock B200_SXM5_180GB, on a fabric", dmi: "GB200 NVL", gpus: times(4, gb200),
			fabric: &nvml.GpuFabricInfo{ClusterUuid: [16]uint8{0xa2, 0x22, 0x14, 0x97, 0xdb, 0xce, 0x49, 0x64, 0x88, 0x26, 0x68, 0x4c, 0x36, 0x94, 0xfd, 0x45},
				CliqueId: 2478, State: nvml.GPU_FABRIC_STATE_COMPLETED}},
		{name: "dgx-h100-fabric", what: "mock dgxh100; its fabric is the machine's own, so NVML shows no cluster", dmi: "DGXH100", gpus: times(8, h100),
			fabric: &nvml.GpuFabricInfo{State: nvml.GPU_FABRIC_STATE_COMPLETED}},
		{name: "a100-pcie", what: "mock A100_PCIE_80GB", dmi: "PowerEdge R750xa", gpus: times(4, a100p80)},
		{name: "h100-pcie", what: "mock H100_SXM5_80GB", dmi: "PowerEdge R760xa", gpus: times(4, h100p)},
		{name: "h100-nvl", what: "mock H100_SXM5_80GB", dmi: "PowerEdge R760xa", gpus: times(4, h100nvl)},
		{name: "a30", what: "mock A30_PCIE_24GB", dmi: "PowerEdge R750", gpus: times(2, a30)},
		{name: "v100", what: "no mock", dmi: "DGX-1 with V100-32", gpus: times(8, v100)},
		{name: "t4", what: "no mock", dmi: "Google Compute Engine", gpus: times(1, t4)},
		{name: "l4", what: "no mock", dmi: "Google Compute Engine", gpus: times(1, l4)},
		{name: "l40s", what: "no mock", dmi: "PowerEdge R760xa", gpus: times(4, l40s)},
		{name: "rtx-pro-6000", what: "no mock", dmi: "X13 8U", gpus: times(8, rtx6000)},
		{name: "two-models-a100", what: "two models in one node: the labels are those of one, by chance, and differ from run to run", dmi: "SYS-420GP-TNR",
			gpus: append(times(2, a100p80), times(4, l40s)...), chosen: "NVIDIA-A100-80GB-PCIe"},
		{name: "two-models-l40s", what: "the same node, at another run", dmi: "SYS-420GP-TNR", gpus: append(times(2, a100p80), times(4, l40s)...), chosen: "NVIDIA-L40S"},
		{name: "dgx-a100-mig-single", what: "mock dgxa100, all GPUs in 1g.5gb", dmi: "DGXA100 920-23687-2530-000", gpus: times(8, a100x40), mig: "single",
			cut: []cut{{gpus: upTo(8), profiles: sevenths}}},
		{name: "dgx-a100-mig-single-part", what: "mock dgxa100, MIG on one of 8 GPUs: invalid for this strategy", dmi: "DGXA100 920-23687-2530-000", gpus: times(8, a100x40), mig: "single",
			cut: []cut{{gpus: []int{0}, profiles: sevenths}}},
		{name: "dgx-a100-mig-single-off", what: "mock dgxa100, MIG on no GPU", dmi: "DGXA100 920-23687-2530-000", gpus: times(8, a100x40), mig: "single"},
		{name: "dgx-h100-mig-mixed", what: "mock dgxh100, two GPUs cut, six whole", dmi: "DGXH100", gpus: times(8, h100), mig: "mixed",
			cut: []cut{{gpus: []int{0}, profiles: sevenths}, {gpus: []int{1}, profiles: []int{twoSlices, twoSlices, threeSlices}}}},
		{name: "dgx-h100-mig-mixed-all", what: "mock dgxh100, all GPUs cut", dmi: "DGXH100", gpus: times(8, h100), mig: "mixed",
			cut: []cut{{gpus: upTo(8), profiles: []int{twoSlices, twoSlices, threeSlices}}}},
		{name: "t4-time-slicing", what: "no mock, 4 replicas", dmi: "Google Compute Engine", gpus: times(1, t4),
			share: "timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}"},
		{name: "t4-time-slicing-renamed", what: "no mock, 4 replicas, renamed", dmi: "Google Compute Engine", gpus: times(1, t4),
			share: "timeSlicing: {renameByDefault: true, resources: [{name: nvidia.com/gpu, replicas: 4}]}"},
		{name: "dgx-h100-mps", what: "mock dgxh100, 10 replicas", dmi: "DGXH100", gpus: times(8, h100),
			share: "mps: {resources: [{name: nvidia.com/gpu, replicas: 10}]}"},
		{name: "dgx-a100-mig-mixed-time-slicing", what: "mock dgxa100, all GPUs in 1g.5gb, 2 replicas", dmi: "DGXA100 920-23687-2530-000", gpus: times(8, a100x40), mig: "mixed",
			cut:   []cut{{gpus: upTo(8), profiles: sevenths}},
			share: "timeSlicing: {resources: [{name: nvidia.com/mig-1g.5gb, replicas: 2}]}"},
	}
}

// library is NVML on the machine. The mock lacks MIG devices, fabrics and bus ids.
func (m machine) library() (nvml.Interface, error) {
	library, err := server.New(server.WithGPUs(m.gpus...), server.WithDriverVersion("580.95.05"), server.WithNVMLVersion("13.580.95.05"),
		server.WithCUDADriverVersion(13000))
	if err != nil {
		return nil, err
	}
	for i, handle := range library.Devices {
		gpu := handle.(*server.Device)
		gpu.UUID = fmt.Sprintf("GPU-%08x-0000-4000-8000-%012x", i, i)
		gpu.GetPciInfoFunc = func() (nvml.PciInfo, nvml.Return) {
			info := nvml.PciInfo{PciDeviceId: gpu.Config.PciDeviceId}
			for k, c := range "0000" + gpu.PciBusID {
				info.BusId[k] = int8(c)
			}
			return info, nvml.SUCCESS
		}
		if m.fabric == nil {
			gpu.GetGpuFabricInfoFunc = func() (nvml.GpuFabricInfo, nvml.Return) { return nvml.GpuFabricInfo{}, nvml.ERROR_NOT_SUPPORTED }
		} else {
			gpu.GetGpuFabricInfoFunc = func() (nvml.GpuFabricInfo, nvml.Return) { return *m.fabric, nvml.SUCCESS }
		}
		if gpu.Config.MIGProfiles.GpuInstanceProfiles == nil {
			gpu.GetMigModeFunc = func() (int, int, nvml.Return) { return 0, 0, nvml.ERROR_NOT_SUPPORTED }
		}
		gpu.GetMaxMigDeviceCountFunc = func() (int, nvml.Return) { return 7, nvml.SUCCESS }
		gpu.GetMigDeviceHandleByIndexFunc = func(int) (nvml.Device, nvml.Return) { return nil, nvml.ERROR_NOT_FOUND }
	}
	for _, cut := range m.cut {
		for _, i := range cut.gpus {
			if err := partition(library.Devices[i].(*server.Device), cut.profiles); err != nil {
				return nil, fmt.Errorf("GPU %d: %w", i, err)
			}
		}
	}
	return library, nil
}

// partition turns MIG on and creates a MIG device of each profile.
func partition(gpu *server.Device, profiles []int) error {
	gpu.MigMode = nvml.DEVICE_MIG_ENABLE
	var devices []nvml.Device
	instances := map[int]nvml.GpuInstance{}
	for i, profile := range profiles {
		info, result := gpu.GetGpuInstanceProfileInfo(profile)
		if result != nvml.SUCCESS {
			return fmt.Errorf("profile %d: %v", profile, result)
		}
		created, _ := gpu.CreateGpuInstance(&info)
		instance := created.(*server.GpuInstance)
		// A compute instance has the number of its GPU instance's slices, minus 1, except of 7 slices, which are not used here.
		computeInfo, result := instance.GetComputeInstanceProfileInfo(int(info.SliceCount)-1, nvml.COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED)
		if result != nvml.SUCCESS {
			return fmt.Errorf("compute profile of profile %d: %v", profile, result)
		}
		compute, _ := instance.CreateComputeInstance(&computeInfo)
		instance.GetComputeInstanceByIdFunc = func(int) (nvml.ComputeInstance, nvml.Return) { return compute, nvml.SUCCESS }
		instances[i] = instance
		devices = append(devices, migDevice(gpu, i, info, computeInfo))
	}
	gpu.GetGpuInstanceByIdFunc = func(id int) (nvml.GpuInstance, nvml.Return) { return instances[id], nvml.SUCCESS }
	gpu.GetMigDeviceHandleByIndexFunc = func(i int) (nvml.Device, nvml.Return) {
		if i >= len(devices) {
			return nil, nvml.ERROR_NOT_FOUND
		}
		return devices[i], nvml.SUCCESS
	}
	return nil
}

// migMiB is the memory of MIG devices of an H100 80GB, by what the mock says: 9.75, 19.62 and 39.5 GiB in nvidia-smi mig
// -lgip. The names of profiles follow from it, so with the mock's sizes and the GPU's real size they would be wrong.
var migMiB = map[uint64]uint64{10240: 9984, 20480: 20096, 40960: 40448}

func migDevice(gpu *server.Device, index int, info nvml.GpuInstanceProfileInfo, compute nvml.ComputeInstanceProfileInfo) nvml.Device {
	attributes := nvml.DeviceAttributes{
		MultiprocessorCount:       info.MultiprocessorCount,
		SharedCopyEngineCount:     info.CopyEngineCount,
		SharedDecoderCount:        info.DecoderCount,
		SharedEncoderCount:        info.EncoderCount,
		SharedJpegCount:           info.JpegCount,
		SharedOfaCount:            info.OfaCount,
		GpuInstanceSliceCount:     info.SliceCount,
		ComputeInstanceSliceCount: compute.SliceCount,
		MemorySizeMB:              info.MemorySizeMB,
	}
	if real, known := migMiB[info.MemorySizeMB]; known && gpu.Config.CudaMajor == 9 {
		attributes.MemorySizeMB = real
	}
	return &mock.Device{
		IsMigDeviceHandleFunc:                  func() (bool, nvml.Return) { return true, nvml.SUCCESS },
		GetDeviceHandleFromMigDeviceHandleFunc: func() (nvml.Device, nvml.Return) { return gpu, nvml.SUCCESS },
		GetAttributesFunc:                      func() (nvml.DeviceAttributes, nvml.Return) { return attributes, nvml.SUCCESS },
		GetGpuInstanceIdFunc:                   func() (int, nvml.Return) { return index, nvml.SUCCESS },
		GetComputeInstanceIdFunc:               func() (int, nvml.Return) { return 0, nvml.SUCCESS },
	}
}
