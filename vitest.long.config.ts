import { defineConfig } from 'vitest/config'
import { testDefaults } from './vitest.shared.config.js'

const minute = 60_000

/** Sweeps, soaks and fault runs: one file at a time, because most of them load the machine on purpose. */
export default defineConfig({
  ...testDefaults,
  test: {
    ...testDefaults.test,
    name: 'long',
    include: ['test/long/**/*.test.ts'],
    passWithNoTests: true,
    fileParallelism: false,
    testTimeout: 20 * minute,
    hookTimeout: 2 * minute,
    globalSetup: ['./test/built.ts', './test/interop/built.ts'],
  },
})
