import { runSeeds } from './seeds.js'

/** Runs the schedules of the seeds from the first argument to before the second one; fails when one breaks a promise. */
const [first, end] = process.argv.slice(2).map(Number)
const broken = await runSeeds(first!, end!)
for (const text of broken) console.error(text)
process.exitCode = broken.length > 0 ? 1 : 0
