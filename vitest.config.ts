import { fileURLToPath } from 'node:url'
import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config'

type Settings = NonNullable<TestProjectInlineConfiguration['test']>

const minute = 60_000
const source = (path: string): string => fileURLToPath(new URL(path, import.meta.url))

/** `signalbox` and our other packages mean the sources here, so a test never meets an old build. */
const alias = [
  { find: /^signalbox$/, replacement: source('./src/index.ts') },
  { find: /^signalbox\/store$/, replacement: source('./src/store/records/index.ts') },
  { find: /^signalbox\/testing$/, replacement: source('./src/testing/index.ts') },
  { find: /^signalbox\/redis$/, replacement: source('./src/engines/redis/index.ts') },
  { find: /^signalbox\/reports$/, replacement: source('./src/reports/index.ts') },
  { find: /^signalbox\/limits$/, replacement: source('./src/limits/index.ts') },
  { find: /^signalbox\/engine$/, replacement: source('./src/engine/index.ts') },
  { find: /^signalbox-conformance$/, replacement: source('./packages/conformance/src/index.ts') },
  { find: /^signalbox-console$/, replacement: source('./packages/console/src/index.ts') },
  {
    find: /^signalbox-console\/page-kit$/,
    replacement: source('./packages/console/src/page-kit/index.ts'),
  },
  { find: /^signalbox-hazelcast$/, replacement: source('./packages/hazelcast/src/index.ts') },
  { find: /^signalbox-lockfile$/, replacement: source('./packages/lockfile/src/index.ts') },
  { find: /^signalbox-redis-quorum$/, replacement: source('./packages/redis-quorum/src/index.ts') },
  {
    find: /^signalbox-zookeeper\/engine$/,
    replacement: source('./packages/zookeeper/src/engine/index.ts'),
  },
  { find: /^signalbox-zookeeper$/, replacement: source('./packages/zookeeper/src/index.ts') },
]

const programs = ['./test/support/built.ts']
const foreignPrograms = [...programs, './test/interop/built.ts']

/**
 * The tests in the folder of that name, unless `include` says otherwise. Projects of one group run beside each other,
 * with equally many workers. Groups run one after the other, so that an earlier one does not disturb a later one.
 */
function project(name: string, group: number, settings: Settings = {}): TestProjectInlineConfiguration {
  return {
    resolve: { alias },
    test: {
      name,
      include: [`test/${name}/**/*.test.ts`],
      pool: 'forks',
      environment: 'node',
      testTimeout: 30_000,
      hookTimeout: 30_000,
      restoreMocks: true,
      unstubEnvs: true,
      sequence: { groupOrder: group },
      ...settings,
    },
  }
}

/** The contract's six long files wait most of their time, so they start together, and tests that compute fill the gaps. */
const firstWorkers = 6

/** Each step of these is a vote of several servers, which a busy processor delays by more than a check allows for. */
const quorum = 'test/contract/quorum-*.test.ts'
const schedules = 'test/long/simulation.test.ts'
/** Nest is installed for `test:all` only. */
const nestjs = 'packages/nestjs/test/**/*.test.ts'

/** package.json says which projects each command runs. */
export default defineConfig({
  test: {
    projects: [
      // npm test
      // A process runs many files: to start one and to load the sources takes longer than most files do.
      project('unit', 0, {
        include: ['test/unit/**/*.test.ts', 'packages/*/test/**/*.test.ts'],
        exclude: [nestjs],
        maxWorkers: firstWorkers,
        isolate: false,
      }),
      project('heap', 0, { maxWorkers: firstWorkers }),
      project('simulation', 0, { maxWorkers: firstWorkers, testTimeout: 10 * minute }),
      project('contract', 0, {
        exclude: [quorum],
        maxWorkers: firstWorkers,
        // Most checks wait most of their time.
        maxConcurrency: 6,
        // Several servers that start at once, next to checks that compute, can take most of a minute.
        testTimeout: 2 * minute,
        hookTimeout: 2 * minute,
        globalSetup: programs,
      }),
      project('quorum', 1, {
        include: [quorum],
        maxWorkers: 3,
        maxConcurrency: 2,
        testTimeout: minute,
        globalSetup: programs,
      }),
      project('smoke', 2, { maxWorkers: 2, testTimeout: minute, globalSetup: programs }),

      // npm run test:all
      project('planted', 3, { maxWorkers: 2, testTimeout: 10 * minute }),
      project('variants', 4, {
        maxWorkers: 4,
        maxConcurrency: 2,
        testTimeout: minute,
        hookTimeout: 2 * minute,
        globalSetup: programs,
      }),
      project('docs', 5, { maxWorkers: 2, testTimeout: minute, globalSetup: programs }),
      project('interop', 5, {
        include: ['test/interop/**/*.test.ts', nestjs],
        maxWorkers: 2,
        testTimeout: 2 * minute,
        globalSetup: foreignPrograms,
      }),
      project('package', 5, { maxWorkers: 2, testTimeout: 3 * minute }),
      project('integration', 6, { maxWorkers: 3, testTimeout: minute, globalSetup: programs }),

      // npm run test:long, which runs these two at once, in two processes: schedules take what processor time is left.
      project('long', 7, {
        exclude: [schedules],
        fileParallelism: false,
        testTimeout: 20 * minute,
        hookTimeout: 2 * minute,
        globalSetup: foreignPrograms,
      }),
      project('schedules', 8, { include: [schedules] }),
    ],
  },
})
