import { defineConfig } from 'vitest/config'
import { testDefaults } from './vitest.shared.config.js'

const minute = 60_000

const schedules = 'test/long/simulation.test.ts'

/**
 * Sweeps, soaks and fault runs. Those that load the machine or measure it run one file at a time; the simulated
 * schedules, which need nothing but processor time, are run beside them, with the lowest priority.
 */
export default defineConfig({
  test: {
    projects: [
      {
        ...testDefaults,
        test: {
          ...testDefaults.test,
          name: 'long',
          include: ['test/long/**/*.test.ts'],
          exclude: [schedules],
          fileParallelism: false,
          testTimeout: 20 * minute,
          hookTimeout: 2 * minute,
          globalSetup: ['./test/built.ts', './test/interop/built.ts'],
        },
      },
      { ...testDefaults, test: { ...testDefaults.test, name: 'schedules', include: [schedules] } },
    ],
  },
})
