import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config'
import { testDefaults } from './vitest.shared.config.js'

type ProjectSettings = NonNullable<TestProjectInlineConfiguration['test']>

/**
 * One kind of tests, in the folder of its name. Projects of one `groupOrder` run beside each other;
 * groups run one after the other, so what a later group measures is not disturbed by an earlier one.
 */
function project(
  name: string,
  groupOrder: number,
  settings: ProjectSettings = {},
): TestProjectInlineConfiguration {
  return {
    ...testDefaults,
    test: {
      ...testDefaults.test,
      name,
      include: [`test/${name}/**/*.test.ts`],
      sequence: { groupOrder },
      ...settings,
    },
  }
}

const built = ['./test/built.ts']
/** Where every step is a vote of several servers, a processor that is full soon costs more than a test allows for. */
const quorum = 'test/contract/quorum.test.ts'

export default defineConfig({
  test: {
    passWithNoTests: true,
    projects: [
      project('unit', 0, { maxWorkers: 4 }),
      project('contract', 0, {
        exclude: [quorum],
        maxWorkers: 4,
        testTimeout: 20_000,
        globalSetup: built,
      }),
      project('simulation', 0, { maxWorkers: 4, testTimeout: 600_000 }),
      project('quorum', 1, {
        include: [quorum],
        fileParallelism: false,
        testTimeout: 20_000,
        globalSetup: built,
      }),
      project('docs', 2, { maxWorkers: 2, testTimeout: 60_000, globalSetup: built }),
      project('interop', 2, {
        maxWorkers: 2,
        testTimeout: 120_000,
        globalSetup: [...built, './test/interop/built.ts'],
      }),
      project('package', 2, { maxWorkers: 2, testTimeout: 180_000, globalSetup: built }),
      project('integration', 3, { maxWorkers: 3, testTimeout: 60_000, globalSetup: built }),
    ],
  },
})
