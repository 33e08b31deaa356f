import { open, type Store, type StoreOptions } from 'signalbox'
import { now } from '../clock.js'
import { until } from '../processes/busy.js'
import { forked, type ForkedSubject } from '../processes/forked.js'
import type { Performance, Window } from '../processes/performer.js'
import { WaitLog } from '../wait-log.js'
import type { Work } from '../work.js'

const ACCOUNTS = 64

interface Arrangement {
  readonly durable: boolean
  readonly processes: number
  /** Number of transactions that each process runs at the same time. */
  readonly tasks: number
  readonly store?: StoreOptions
}

/** Transactions that move an amount between two accounts. They must not change the total of all accounts. */
function transfers({ durable, processes, tasks, store: options }: Arrangement): ForkedSubject {
  const name = [
    durable ? 'durable' : 'not durable',
    processes === 1 ? '1 process' : `${processes} processes`,
    tasks === 1 ? '1 at a time' : `${tasks} at a time`,
    ...(options?.group ? ['sharing commits'] : []),
  ].join(', ')
  return forked(
    name,
    async ({ folder }) => {
      const box = await open(`file:${folder}?durable=${durable}`)
      const store = box.store('bank', options)
      return { perform: window => move(window, store, tasks), stop: () => box.close() }
    },
    { processes },
  )
}

async function move(window: Window, store: Store, tasks: number): Promise<Performance> {
  const waits = new WaitLog()
  let operations = 0
  await until(window.startAt)
  const task = async (): Promise<void> => {
    for (let since = now(); since < window.endAt; since = now()) {
      const from = Math.floor(Math.random() * ACCOUNTS)
      const to = (from + 1 + Math.floor(Math.random() * (ACCOUNTS - 1))) % ACCOUNTS
      await store.transaction([`account ${from}`, `account ${to}`], transaction => {
        transaction.put(`account ${from}`, (transaction.get<number>(`account ${from}`) ?? 0) - 1)
        transaction.put(`account ${to}`, (transaction.get<number>(`account ${to}`) ?? 0) + 1)
      })
      const end = now()
      waits.add(end - since)
      if (end <= window.endAt) operations++
    }
  }
  await Promise.all(Array.from({ length: tasks }, task))
  return { operations, waits: waits.values(), broken: await imbalance(store) }
}

/** Checks the total of all accounts at one moment. Returns a description if it is wrong. */
async function imbalance(store: Store): Promise<string | undefined> {
  const accounts = Array.from({ length: ACCOUNTS }, (_, index) => `account ${index}`)
  const done = await store.transaction(accounts, transaction =>
    accounts.reduce((total, account) => total + (transaction.get<number>(account) ?? 0), 0),
  )
  return done.applied && done.result === 0 ? undefined : 'the sum of all accounts has changed'
}

const TOGETHER: StoreOptions = { group: { maxSize: 64, maxTime: '20ms' } }

/** Transactions of two keys on the file engine. A wait is the duration of a whole transaction. */
export const storeTransfers: Work = {
  part: 'store',
  name: `transactions of 2 of ${ACCOUNTS} keys, file engine`,
  seconds: 0.7,
  subjects: [
    transfers({ durable: true, processes: 1, tasks: 1 }),
    transfers({ durable: true, processes: 1, tasks: 16 }),
    transfers({ durable: true, processes: 4, tasks: 16 }),
    transfers({ durable: true, processes: 4, tasks: 16, store: TOGETHER }),
    transfers({ durable: false, processes: 1, tasks: 1 }),
    transfers({ durable: false, processes: 1, tasks: 16 }),
    transfers({ durable: false, processes: 4, tasks: 16 }),
  ],
  comparisons: [],
}
