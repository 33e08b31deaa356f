import { open } from 'signalbox'
import { START_BALANCE } from './check/money.js'
import type { Account } from './history.js'
import { ACCOUNTS, accountsOf } from './protocol.js'

/** Whether another program can hold values of an engine in a transaction. This one uses `pg`. */
export async function canHoldValues(engine: string): Promise<boolean> {
  if (!/^postgres(ql)?:/.test(engine)) return false
  return import('pg').then(
    () => true,
    () => false,
  )
}

/** Holds the values of all accounts in a transaction that changes nothing. Returns a function that ends it. */
export async function holdValues(engine: string, run: string): Promise<() => Promise<void>> {
  const { default: pg } = await import('pg')
  const place = new URL(engine)
  place.searchParams.delete('signalbox_schema')
  const client = new pg.Client(place.href)
  client.on('error', () => undefined)
  const box = await open(engine)
  await client.connect()
  await client.query('begin')
  await box.store(accountsOf(run)).transaction(
    ACCOUNTS,
    transaction => {
      for (const name of ACCOUNTS)
        transaction.put(name, transaction.get<Account>(name) ?? { balance: START_BALANCE, changes: 0 })
    },
    { in: client },
  )
  return async () => {
    await client.query('rollback')
    await client.end()
    await box.close()
  }
}
