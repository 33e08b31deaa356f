import { type LockOptions, lock, lockSync } from 'signalbox-lockfile'

/** The plan of a program that uses a lock of a file, as JSON in its only argument. */
export interface LockfilePlan {
  readonly file: string
  readonly sync?: boolean
  readonly options?: LockOptions
  /** The action after it has printed `held`: none, with no work left; exiting; or throwing. */
  readonly then: 'stay' | 'end' | 'exit' | 'throw'
  /** Whether it handles SIGTERM without exiting. */
  readonly handles?: boolean
  /** Whether it throws when the lock is compromised. */
  readonly throws?: boolean
}

const plan = JSON.parse(process.argv[2]!) as LockfilePlan
const onCompromised = (error: Error) => {
  throw error
}
const options: LockOptions = { ...plan.options, ...(plan.throws === true ? { onCompromised } : {}) }

if (plan.handles === true) process.on('SIGTERM', () => console.log('handled'))
if (plan.sync === true) lockSync(plan.file, options)
else await lock(plan.file, options)
console.log('held')
process.on('warning', warning => console.log(`warned ${(warning as NodeJS.ErrnoException).code}`))
if (plan.then === 'stay') setInterval(() => undefined, 1000)
if (plan.then === 'exit') process.exit(3)
if (plan.then === 'throw') throw new Error('a crash')
