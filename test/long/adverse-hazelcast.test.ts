import { hazelcast } from '../contract/hazelcast-fixture.js'
import { adverseSuite } from '../contract/suite.js'

adverseSuite(hazelcast)
