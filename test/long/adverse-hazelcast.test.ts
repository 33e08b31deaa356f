import { hazelcast } from '../contract/hazelcast-fixture.js'
import { adverseSuite } from '../contract/suite.js'

// All boxes compare and set one entry: a far one comes too late as long as near ones change it without a pause, and is
// refused after a while, as the page on Hazelcast says.
const UNFAIR = [40, 150, 400].map(
  roundTrip => `a box ${roundTrip} ms away > gets at least half of its fair share of a hot key`,
)

adverseSuite(hazelcast, UNFAIR)
