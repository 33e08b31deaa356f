import type { Application } from '../src/cli/application.js'

/** Available only in a clone, because the package has no timetable. */
export const trains: Application = {
  name: 'trains',
  description: 'drive the trains of a timetable through shared locations',
  command: async () => (await import('./trains/options.js')).trainsCommand(),
  run: async args => (await import('./trains/command.js')).trains(args),
}

export const mutex: Application = {
  name: 'mutex',
  description: 'show what a mutex does, and what goes wrong without one',
  command: async () => (await import('./mutex/command.js')).mutexCommand(),
  run: async args => (await import('./mutex/command.js')).mutex(args),
}

export const chaos: Application = {
  name: 'chaos',
  description: 'disturb clients of an engine, and check that it keeps its promises',
  command: async () => (await import('./chaos/command.js')).chaosCommand(),
  run: async args => (await import('./chaos/command.js')).runChaos(args),
}
