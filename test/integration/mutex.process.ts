import { MutexService } from '../../apps/mutex/mutex-service.js'
import { lockedWork, work, type TaskParts } from '../../apps/mutex/task.js'

/** A command for a process of the test. */
export type MutexOrder = 'work' | 'lockedWork' | 'end'

/** A step with its time on the monotonic clock, in nanoseconds. */
export interface MutexStep {
  readonly line: string
  readonly at: string
}

/** Runs one task of the mutex demo in a process of its own. Arguments: `url key number`. */
const [url = '', key = '', number = ''] = process.argv.slice(2)
const service = new MutexService({ url, leaseSeconds: 5, waitMillis: 60_000, log: print })
const parts: TaskParts = { print, duration: 50 }

function print(line: string): void {
  process.send!({ line, at: String(process.hrtime.bigint()) } satisfies MutexStep)
}

async function execute(order: MutexOrder): Promise<void> {
  if (order === 'work') await work(Number(number), parts)
  else if (order === 'lockedWork') await lockedWork(Number(number), service, key, parts)
  else {
    await service.close()
    process.disconnect()
    return
  }
  print('done')
}

process.on('message', (order: MutexOrder) => void execute(order))
print('ready')
