import { fileURLToPath } from 'node:url'

/** What all test projects share. `signalbox` means the sources here, so a test never meets an old build. */
export const testDefaults = {
  resolve: {
    alias: [
      { find: /^signalbox$/, replacement: fileURLToPath(new URL('./src/index.ts', import.meta.url)) },
      {
        find: /^signalbox\/store$/,
        replacement: fileURLToPath(new URL('./src/store/records/index.ts', import.meta.url)),
      },
      {
        find: /^signalbox\/limits$/,
        replacement: fileURLToPath(new URL('./src/limits/index.ts', import.meta.url)),
      },
      {
        find: /^signalbox\/engine$/,
        replacement: fileURLToPath(new URL('./src/engines/index.ts', import.meta.url)),
      },
      {
        find: /^signalbox\/conformance$/,
        replacement: fileURLToPath(new URL('./src/conformance/index.ts', import.meta.url)),
      },
    ],
  },
  test: {
    pool: 'forks' as const,
    environment: 'node' as const,
    testTimeout: 30_000,
    hookTimeout: 30_000,
    restoreMocks: true,
    unstubEnvs: true,
  },
}
