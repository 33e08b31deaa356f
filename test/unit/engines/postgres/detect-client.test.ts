import pg from 'pg'
import { expect, test } from 'vitest'
import { VirtualClock } from '../../../../src/base/clock.js'
import { detectClient } from '../../../../src/engines/postgres/clients/detect-client.js'

test.each([
  ['postgres://me:secret@db:6432/app?sslmode=require', 'postgres://db:6432/app'],
  ['postgres://me:sec/secret@db/app', 'postgres://db/app'],
  ['postgres://me:sec@secret@db/app', 'postgres://db/app'],
  ['postgres:///app?host=db&password=secret', 'postgres:///app'],
])('the name of a pool of %s has no password', async (connectionString, name) => {
  const client = await detectClient(new pg.Pool({ connectionString }), 'signalbox', new VirtualClock())
  expect(client.name).toBe(name)
})
