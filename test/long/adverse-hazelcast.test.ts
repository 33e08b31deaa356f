import { hazelcast } from '../contract/hazelcast-fixture.js'
import { thaw } from '../../packages/conformance/src/thaw.js'
import { adverseSuite, contractParts } from '../contract/suite.js'

adverseSuite(hazelcast)
contractParts(hazelcast, thaw)
