import { test } from 'vitest'
import { PostgresTablePorts } from '../support/postgres/table-port.js'
import { startPostgres } from '../support/servers/postgres.js'
import { compareHistories } from '../support/table-histories.js'

const WORLDS = 60

test(`the functions of the schema decide as the lock table does, over ${WORLDS} random histories`, async () => {
  await using server = await startPostgres()
  const ports = new PostgresTablePorts(server)
  await compareHistories(() => ports.take(), 1, WORLDS)
  await ports.close()
})
