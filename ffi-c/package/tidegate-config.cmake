# find_package(tidegate): the targets tidegate::tidegate (shared) and tidegate::tidegate_static.
get_filename_component(_tidegate_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT TARGET tidegate::tidegate)
  add_library(tidegate::tidegate SHARED IMPORTED)
  set_target_properties(tidegate::tidegate PROPERTIES
    IMPORTED_LOCATION "${_tidegate_prefix}/lib/libtidegate.so"
    INTERFACE_INCLUDE_DIRECTORIES "${_tidegate_prefix}/include")
  add_library(tidegate::tidegate_static STATIC IMPORTED)
  set_target_properties(tidegate::tidegate_static PROPERTIES
    IMPORTED_LOCATION "${_tidegate_prefix}/lib/libtidegate.a"
    INTERFACE_INCLUDE_DIRECTORIES "${_tidegate_prefix}/include"
    INTERFACE_LINK_LIBRARIES "gcc_s;util;rt;pthread;m;dl;c")
endif()
unset(_tidegate_prefix)
