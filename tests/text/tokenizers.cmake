# The driver that tests/text/tokenizers/run.sh holds against the real tokenizers. Not a ctest: it
# needs node and, the first time, the npm registry.
add_executable(estimate_driver ${CMAKE_CURRENT_LIST_DIR}/estimate_driver.cpp)
target_link_libraries(estimate_driver PRIVATE flashgate_text)
