import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'
import config from '../../vitest.config.js'
import type { MutatedSource } from './mutated-copy.js'

const { path, code } = JSON.parse(process.env['SIGNALBOX_MUTANT']!) as MutatedSource

/** The projects of the root configuration, with a mutant in the sources. */
export default defineConfig({
  test: {
    projects: (config.test!.projects as object[]).map(project => ({
      ...project,
      root: fileURLToPath(new URL('../..', import.meta.url)),
      plugins: [
        {
          name: 'mutant',
          enforce: 'pre' as const,
          load: (id: string) => (id === path ? code : undefined),
        },
      ],
    })),
  },
})
